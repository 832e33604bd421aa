// oneDNN by its C interface, of version 2 or 3: its BLAS-like functions, the matrix-product
// primitive with weights packed beforehand, and the reorder primitive for transposes.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "mblas/error.hpp"
#include "peer.hpp"
#include "shared_library.hpp"

namespace mblas::bench {
namespace {

using cases::Case;
using cases::GemmCase;
using cases::TransposeCase;

// What is used of the interface. Its objects are opaque here, descriptors of matrices too: in
// version 2 those are structures of the program's, in version 3 objects of the library's.
using Handle = void*;
using Object = std::shared_ptr<void>;
struct Version {
  int major, minor, patch;
};
struct Argument {
  int index;
  Handle memory;
};
constexpr int kSuccess = 0;
constexpr int kCpu = 1;                                       // kind of engine
constexpr unsigned kInOrder = 1;                              // stream
constexpr int kAnyFormat = 1;                                 // format tag
constexpr int kQueryWeights = 131;                            // descriptor of an operand
constexpr int kSource = 1, kDestination = 17, kWeights = 33;  // arguments
constexpr std::size_t kStructureBytes = 16384;                // more than any of version 2

/// The library's number of the type; 0 where it has none.
int number_of(DType type) {
  switch (type) {
    case DType::f16:
    case DType::b2:
      return 1;
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::b4:
      return 3;
    case DType::i32:
      return 4;
    case DType::i8:
    case DType::b1:
      return 5;
    default:
      return 0;
  }
}

struct Extents {
  std::int64_t rows, cols;
};
struct Pitches {
  std::int64_t row, col;
};

class Onednn final : public Peer {
 public:
  Onednn(const std::string& path, int threads) : library_(path) {
    const auto* version = library_.get<const Version*()>("dnnl_version")();
    name_ = "onednn";
    description_ = fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor,
                               version->patch, library_.path());
    if (const auto omp = library_.find<void(int)>("omp_set_num_threads"))
      omp(threads);
    else
      throw Error(Status::BackendUnavailable,
                  fmt::format("{} is not built on OpenMP: its number of threads cannot be set",
                              library_.path()));
    call("dnnl_engine_create", &engine_, kCpu, std::size_t{0});
    call("dnnl_stream_create", &stream_, engine_, kInOrder);
  }

  std::vector<Way> ways(const Case& resolved, std::span<cases::Run> runs) const override {
    std::vector<Way> list;
    if (const auto* gemm = std::get_if<GemmCase>(&resolved)) {
      if (!is_product(*gemm)) return list;
      add_blas(*gemm, runs, list);
      add_matmul(*gemm, runs, list);
    } else if (const auto* transpose = std::get_if<TransposeCase>(&resolved)) {
      add_reorder(*transpose, runs, list);
    }
    return list;
  }

 private:
  /// Calls a function that returns a status. Status::NotSupported where it is not success.
  template <class... Args>
  void call(const char* name, Args... args) const {
    const int status = library_.get<int(Args...)>(name)(args...);
    if (status != kSuccess)
      throw Error(Status::NotSupported, fmt::format("{} returns status {}", name, status));
  }

  /// A new object, from the function that makes it and the one that destroys it.
  template <class... Args>
  Object make(const char* name, const char* destroy, Args... args) const {
    Handle handle = nullptr;
    call(name, &handle, args...);
    return {handle, library_.get<int(Handle)>(destroy)};
  }
  static Object structure() { return std::make_shared<std::byte[]>(kStructureBytes); }

  using Sizes = const std::int64_t*;
  Object strided(DType type, Extents e, Pitches p) const {
    const std::int64_t dims[12] = {e.rows, e.cols}, strides[12] = {p.row, p.col};
    if (!library_.find<void()>("dnnl_memory_desc_init_by_strides"))
      return make("dnnl_memory_desc_create_with_strides", "dnnl_memory_desc_destroy", 2,
                  Sizes(dims), number_of(type), Sizes(strides));
    Object descriptor = structure();
    call("dnnl_memory_desc_init_by_strides", descriptor.get(), 2, Sizes(dims), number_of(type),
         Sizes(strides));
    return descriptor;
  }
  Object any_format(DType type, Extents e) const {
    const std::int64_t dims[12] = {e.rows, e.cols};
    if (!library_.find<void()>("dnnl_memory_desc_init_by_tag"))
      return make("dnnl_memory_desc_create_with_tag", "dnnl_memory_desc_destroy", 2, Sizes(dims),
                  number_of(type), kAnyFormat);
    Object descriptor = structure();
    call("dnnl_memory_desc_init_by_tag", descriptor.get(), 2, Sizes(dims), number_of(type),
         kAnyFormat);
    return descriptor;
  }

  Object memory(const void* descriptor, void* data) const {
    return make("dnnl_memory_create", "dnnl_memory_destroy", descriptor, engine_, data);
  }
  Object primitive(const Object& descriptor) const {
    return make("dnnl_primitive_create", "dnnl_primitive_destroy",
                static_cast<const void*>(descriptor.get()));
  }
  Object reorder(const void* from, const void* to) const {
    return primitive(make("dnnl_reorder_primitive_desc_create", "dnnl_primitive_desc_destroy", from,
                          engine_, to, engine_, static_cast<const void*>(nullptr)));
  }

  /// A call of the primitive that returns when it is done.
  Call execution(Object primitive, std::vector<std::pair<int, Object>> operands) const {
    std::vector<Argument> arguments;
    for (const auto& [index, memory] : operands) arguments.push_back({index, memory.get()});
    const auto execute =
        library_.get<int(Handle, Handle, int, const Argument*)>("dnnl_primitive_execute");
    const auto wait = library_.get<int(Handle)>("dnnl_stream_wait");
    return [=, primitive = std::move(primitive), operands = std::move(operands),
            arguments = std::move(arguments), stream = stream_] {
      execute(primitive.get(), stream, int(arguments.size()), arguments.data());
      wait(stream);
    };
  }

  /// Its matrix products are row-major: a column-major one is that of the operands swapped.
  struct Product {
    std::size_t a, b;  // which operand is A, which B
    bool trans_a, trans_b;
    std::int64_t m, n, k, lda, ldb, ldc;
  };
  static Product row_major(const GemmCase& c) {
    const bool ta = is_transposed(c.transA), tb = is_transposed(c.transB);
    if (c.layout == Layout::RowMajor) return {0, 1, ta, tb, c.m, c.n, c.k, c.lda, c.ldb, c.ldc};
    return {1, 0, tb, ta, c.n, c.m, c.k, c.ldb, c.lda, c.ldc};
  }

  void add_blas(const GemmCase& c, std::span<cases::Run> runs, std::vector<Way>& list) const {
    const bool f32 = c.in == DType::f32;
    if (!f32 && c.in != DType::i8) return;
    Way way{f32 ? "dnnl_sgemm" : "dnnl_gemm_s8s8s32", {}};
    const auto sgemm =
        library_.get<int(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                         std::int64_t, const float*, std::int64_t, float, float*, std::int64_t)>(
            "dnnl_sgemm");
    const auto igemm = library_.get<int(
        char, char, char, std::int64_t, std::int64_t, std::int64_t, float, const std::int8_t*,
        std::int64_t, std::int8_t, const std::int8_t*, std::int64_t, std::int8_t, float,
        std::int32_t*, std::int64_t, const std::int32_t*)>("dnnl_gemm_s8s8s32");
    for (cases::Run& run : runs) {
      struct Operands {
        const void *A, *B;
        void* C;
      };
      const Product p = row_major(c);
      std::vector<Operands> problems;
      for (std::int64_t b = 0; b < c.batch; ++b)
        problems.push_back(
            {run.operands()[p.a].at(b), run.operands()[p.b].at(b), run.operands()[2].at(b)});
      way.calls.push_back([=, problems = std::move(problems), ta = p.trans_a ? 'T' : 'N',
                           tb = p.trans_b ? 'T' : 'N', alpha = float(c.alpha.re),
                           beta = float(c.beta.re)] {
        const std::int32_t no_offset = 0;
        for (const auto& [A, B, C] : problems) {
          if (f32)
            sgemm(ta, tb, p.m, p.n, p.k, alpha, static_cast<const float*>(A), p.lda,
                  static_cast<const float*>(B), p.ldb, beta, static_cast<float*>(C), p.ldc);
          else
            igemm(ta, tb, 'F', p.m, p.n, p.k, alpha, static_cast<const std::int8_t*>(A), p.lda, 0,
                  static_cast<const std::int8_t*>(B), p.ldb, 0, beta, static_cast<std::int32_t*>(C),
                  p.ldc, &no_offset);
        }
      });
    }
    list.push_back(std::move(way));
  }

  /// The primitive takes the second operand, the weights, in a format of its own choice: they are
  /// packed here, once, as for a layer of a network.
  void add_matmul(const GemmCase& c, std::span<cases::Run> runs, std::vector<Way>& list) const {
    const bool narrow = c.in == DType::bf16 || c.in == DType::f16 || c.in == DType::i8;
    if (!narrow || c.batch != 1 || !(c.alpha == Scalar{1, 0}) || !(c.beta == Scalar{})) return;
    const Product p = row_major(c);
    const auto pitches = [](bool transposed, std::int64_t ld) {
      return transposed ? Pitches{1, ld} : Pitches{ld, 1};
    };
    try {
      const Object source = strided(c.in, {p.m, p.k}, pitches(p.trans_a, p.lda));
      const Object plain = strided(c.in, {p.k, p.n}, pitches(p.trans_b, p.ldb));
      const Object weights = any_format(c.in, {p.k, p.n});
      const Object result = strided(c.out, {p.m, p.n}, {p.ldc, 1});
      const Object descriptor = matmul(source.get(), weights.get(), result.get());
      const Object product = primitive(descriptor);
      const void* packed = library_.get<const void*(const void*, int, int)>(
          "dnnl_primitive_desc_query_md")(descriptor.get(), kQueryWeights, 0);
      const auto bytes =
          library_.get<std::size_t(const void*)>("dnnl_memory_desc_get_size")(packed);
      const Object packing = reorder(plain.get(), packed);
      Way way{"matmul, packed weights", {}};
      for (cases::Run& run : runs) {
        const auto at = run.operands();
        constexpr std::align_val_t kPage{4096};
        const std::shared_ptr<void> data(::operator new(bytes, kPage),
                                         [](void* q) { ::operator delete(q, kPage); });
        const Object to = memory(packed, data.get());
        execution(packing, {{kSource, memory(plain.get(), at[p.b].at())}, {kDestination, to}})();
        Call product_call = execution(product, {{kSource, memory(source.get(), at[p.a].at())},
                                                {kWeights, to},
                                                {kDestination, memory(result.get(), at[2].at())}});
        way.calls.push_back(
            [data, descriptor, product_call = std::move(product_call)] { product_call(); });
      }
      list.push_back(std::move(way));
    } catch (const Error& e) {
      if (e.status() != Status::NotSupported) throw;  // a type that it lacks on this CPU
    }
  }

  /// The descriptor of the product.
  Object matmul(const void* source, const void* weights, const void* result) const {
    const void* const none = nullptr;
    if (!library_.find<void()>("dnnl_matmul_desc_init"))
      return make("dnnl_matmul_primitive_desc_create", "dnnl_primitive_desc_destroy", engine_,
                  source, weights, none, result, none);
    const Object operation = structure();
    call("dnnl_matmul_desc_init", operation.get(), source, weights, none, result);
    return make("dnnl_primitive_desc_create", "dnnl_primitive_desc_destroy",
                static_cast<const void*>(operation.get()), none, engine_, none);
  }

  void add_reorder(const TransposeCase& c, std::span<cases::Run> runs,
                   std::vector<Way>& list) const {
    // It is slow for some types on some CPUs.
    if (c.type == DType::b2) add_reorder(c, DType::bf16, runs, list);
    add_reorder(c, c.type, runs, list);
  }
  void add_reorder(const TransposeCase& c, DType type, std::span<cases::Run> runs,
                   std::vector<Way>& list) const {
    if (number_of(type) == 0 || c.batch != 1) return;
    const bool by_rows = c.layout == Layout::RowMajor;
    const std::int64_t rows = by_rows ? c.m : c.n, cols = by_rows ? c.n : c.m;
    try {
      const Object from = strided(type, {rows, cols}, {c.lda, 1});
      const Object to = strided(type, {rows, cols}, {1, c.ldb});
      const Object transposition = reorder(from.get(), to.get());
      Way way{fmt::format("reorder {}", name_of(type)), {}};
      for (cases::Run& run : runs)
        way.calls.push_back(
            execution(transposition, {{kSource, memory(from.get(), run.operands()[0].at())},
                                      {kDestination, memory(to.get(), run.operands()[1].at())}}));
      list.push_back(std::move(way));
    } catch (const Error& e) {
      if (e.status() != Status::NotSupported) throw;
    }
  }

  SharedLibrary library_;
  Handle engine_ = nullptr, stream_ = nullptr;  // kept as long as the process
};

}  // namespace

std::unique_ptr<Peer> load_onednn(const std::string& path, int threads) {
  return std::make_unique<Onednn>(path, threads);
}

}  // namespace mblas::bench
