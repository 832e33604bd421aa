// Reads handwritten digits: each held-out image is given the label that most of its nearest
// neighbours among the training images have. The distances of all pairs are one matrix product,
//   |x - y|^2 = |x|^2 + |y|^2 - 2 x·y.
// Pixels are integers up to 16 and an image has 64 of them, so every term is an integer below 2^24,
// exact in float whatever the order of summation: all backends must find the same neighbours.
//
// Usage: digits [backend [file]]; without a backend, the one that MBLAS_BACKEND names. The exit
// status is 0 where more than 95 % are right, and 77 where the backend cannot run here.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <mblas/mblas.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kPixels = 64;
constexpr int kClasses = 10;
constexpr int kNeighbours = 3;

struct Images {
  std::vector<float> pixels;  // count() rows of kPixels
  std::vector<int> labels;

  std::int64_t count() const { return std::int64_t(labels.size()); }
  std::span<const float> image(std::int64_t i) const {
    return std::span(pixels).subspan(std::size_t(i * kPixels), kPixels);
  }
};

Images read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  Images images;
  for (std::string line; std::getline(file, line);) {
    const char* at = line.data();
    const char* const end = at + line.size();
    for (std::int64_t field = 0; field <= kPixels; ++field) {
      int value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      const bool last = field == kPixels;
      if (error != std::errc() || (last ? next != end : next == end || *next != ','))
        throw std::runtime_error(path + ", line " + std::to_string(images.count() + 1) +
                                 ": not 64 pixels and a label");
      if (last)
        images.labels.push_back(value);
      else
        images.pixels.push_back(float(value));
      at = next + 1;
    }
  }
  return images;
}

/// The first `count` images, and the others. The file is ordered by writer: those others are mostly
/// by people whose hand the first part does not show.
std::pair<Images, Images> split(const Images& all, std::int64_t count) {
  const auto pixel = all.pixels.begin() + count * kPixels;
  const auto label = all.labels.begin() + count;
  return {{{all.pixels.begin(), pixel}, {all.labels.begin(), label}},
          {{pixel, all.pixels.end()}, {label, all.labels.end()}}};
}

/// Squared distances less |x|^2, which orders nothing: row i holds those of held-out image i.
std::vector<float> distances(mblas::Context& context, const Images& held_out, const Images& train) {
  using mblas::Layout;
  using mblas::Op;
  const std::int64_t m = held_out.count(), n = train.count();
  std::vector<float> train_columns(std::size_t(kPixels * n));
  mblas::transpose(context, Layout::RowMajor, n, kPixels, train.pixels.data(), kPixels,
                   train_columns.data(), n);

  std::vector<float> result(std::size_t(m * n));
  for (std::int64_t j = 0; j < n; ++j) {
    const auto y = train.image(j);
    result[std::size_t(j)] = std::inner_product(y.begin(), y.end(), y.begin(), 0.0f);
  }
  for (std::int64_t i = 1; i < m; ++i) std::copy_n(result.begin(), n, result.begin() + i * n);
  mblas::gemm(context, Layout::RowMajor, Op::NoTrans, Op::NoTrans, m, n, kPixels, -2,
              held_out.pixels.data(), kPixels, train_columns.data(), n, 1, result.data(), n);
  return result;
}

/// The label that most of the nearest have; among equals, that of the nearer image.
int vote(std::span<const float> distance, const std::vector<int>& labels) {
  std::vector<int> order(distance.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int i) { return std::pair(distance[std::size_t(i)], i); };
  std::partial_sort(order.begin(), order.begin() + kNeighbours, order.end(),
                    [&](int a, int b) { return at(a) < at(b); });
  std::array<int, kClasses> votes{};
  int best = labels[std::size_t(order[0])];
  for (int i = 0; i < kNeighbours; ++i) ++votes.at(std::size_t(labels[std::size_t(order[i])]));
  for (int i = 1; i < kNeighbours; ++i) {
    const int label = labels[std::size_t(order[i])];
    if (votes[std::size_t(label)] > votes[std::size_t(best)]) best = label;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    mblas::Context context;
    if (argc > 1) context.set_backend(argv[1]);
    const Images all = read(argc > 2 ? argv[2] : DIGITS_CSV);
    const auto [train, held_out] = split(all, all.count() * 2 / 3);

    const std::vector<float> distance = distances(context, held_out, train);
    const mblas::Dispatch& receipt = context.last_dispatch();
    const std::size_t n = train.labels.size();
    int right = 0;
    for (std::size_t i = 0; i < held_out.labels.size(); ++i)
      right += vote(std::span(distance).subspan(i * n, n), train.labels) == held_out.labels[i];

    const double percent = 100.0 * right / double(held_out.count());
    std::cout << "digits: " << right << " of " << held_out.count() << " held-out images right ("
              << percent << " %), backend " << receipt.backend << ", kernel " << receipt.kernel
              << '\n';
    return percent > 95 ? 0 : 1;
  } catch (const mblas::Error& error) {
    std::cerr << "digits: " << error.what() << '\n';
    return error.status() == mblas::Status::BackendUnavailable ? 77 : 1;
  } catch (const std::exception& error) {
    std::cerr << "digits: " << error.what() << '\n';
    return 1;
  }
}
