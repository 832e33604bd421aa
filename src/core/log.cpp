#include "core/log.hpp"

#include <atomic>
#include <charconv>
#include <cstdio>

#include "core/tune.hpp"

namespace mblas {
namespace {

/// Appends ` --flag value` pairs.
struct Line {
  std::string text;

  Line& word(std::string_view flag, std::string_view value) {
    text.append(" ").append(flag).append(" ").append(value);
    return *this;
  }
  Line& number(std::string_view flag, std::int64_t value) {
    return word(flag, std::to_string(value));
  }
  Line& scalar(std::string_view flag, Scalar value, bool complex) {
    std::string s = shortest(value.re);
    if (complex) s += "," + shortest(value.im);
    return word(flag, s);
  }
  Line& op(std::string_view flag, Op value) { return word(flag, std::string(1, char(value))); }
  Line& batch(std::int64_t count, bool pointers) {
    if (count != 1 || pointers) number("--batch", count);
    if (pointers) text += " --pointers";
    return *this;
  }
  template <class Void>
  Line& stride(std::string_view flag, const Operand<Void>& x, std::int64_t count) {
    return count > 1 && !x.pointers ? number(flag, x.stride) : *this;
  }

  static std::string shortest(double value) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return {buffer, end};
  }
};

}  // namespace

std::string replay(const GemmArgs& g) {
  Line line{std::string(op_name<GemmArgs>)};
  line.word("--type", name_of(g.in)).word("--out", name_of(g.out)).word("--layout", "R");
  line.op("--transA", g.transA).op("--transB", g.transB);
  line.number("-m", g.m).number("-n", g.n).number("-k", g.k);
  if (g.k > 0) line.number("--lda", g.A.ld).number("--ldb", g.B.ld);
  line.number("--ldc", g.C.ld);
  line.scalar("--alpha", g.alpha, is_complex(g.in)).scalar("--beta", g.beta, is_complex(g.in));
  line.batch(g.batch, g.C.pointers != nullptr);
  line.stride("--strideA", g.A, g.batch).stride("--strideB", g.B, g.batch);
  line.stride("--strideC", g.C, g.batch);
  line.word("--compute", name_of(g.compute));
  if (g.tolerance != 0) line.word("--tolerance", Line::shortest(g.tolerance));
  const Epilogue& e = g.epilogue;
  if (e.bias.per != BiasPer::None) line.word("--bias", name_of(e.bias.per));
  if (e.activation != Activation::None) line.word("--activation", name_of(e.activation));
  if (e.scale != 1) line.word("--scale", Line::shortest(e.scale));
  return line.text;
}

std::string replay(const GeamArgs& g) {
  Line line{std::string(op_name<GeamArgs>)};
  line.word("--type", name_of(g.type)).word("--layout", "R");
  line.op("--transA", g.transA).op("--transB", g.transB).number("-m", g.m).number("-n", g.n);
  if (g.alpha != Scalar{}) line.number("--lda", g.A.ld);
  if (g.beta != Scalar{}) line.number("--ldb", g.B.ld);
  line.number("--ldc", g.C.ld);
  line.scalar("--alpha", g.alpha, is_complex(g.type)).scalar("--beta", g.beta, is_complex(g.type));
  if (g.alpha != Scalar{} && g.A.data == g.C.data)
    line.word("--alias", "A");
  else if (g.beta != Scalar{} && g.B.data == g.C.data)
    line.word("--alias", "B");
  line.batch(g.batch, g.C.pointers != nullptr);
  line.stride("--strideA", g.A, g.batch).stride("--strideB", g.B, g.batch);
  line.stride("--strideC", g.C, g.batch);
  return line.text;
}

std::string replay(const TransposeArgs& t) {
  Line line{std::string(op_name<TransposeArgs>)};
  line.word("--type", name_of(t.type)).word("--layout", "R").number("-m", t.m).number("-n", t.n);
  line.number("--lda", t.A.ld).number("--ldb", t.B.ld).batch(t.batch, t.A.pointers != nullptr);
  line.stride("--strideA", t.A, t.batch).stride("--strideB", t.B, t.batch);
  return line.text;
}

std::string replay(const TransposeInplaceArgs& t) {
  Line line{std::string(op_name<TransposeInplaceArgs>)};
  line.word("--type", name_of(t.type)).word("--layout", "R").number("-m", t.m).number("-n", t.n);
  line.number("--lda", t.A.ld).number("--ldb", t.ldb).batch(t.batch, t.A.pointers != nullptr);
  line.stride("--strideA", t.A, t.batch);
  return line.text;
}

std::string replay(const Gf256Args& g) {
  Line line{std::string(op_name<Gf256Args>)};
  line.number("-m", g.m).number("-n", g.n).number("-k", g.k);
  if (g.k > 0) line.number("--lda", g.A.ld);
  if (g.k > 0 && !g.B.pointers) line.number("--ldb", g.B.ld);
  if (!g.C.pointers) line.number("--ldc", g.C.ld);
  if (g.C.pointers) line.text += " --pointers";
  if (g.accumulate) line.text += " --accumulate";
  return line.number("--poly", g.poly).text;
}

namespace {
/// Once a process: what is wrong with its tune file.
void log_tune_file(std::string& text) {
  static std::atomic_flag said;
  const TuneFile& file = tune_file();
  const bool foreign = tune_table() && tune_table()->foreign();
  if ((file.problem.empty() && !foreign) || said.test_and_set()) return;
  text.append("# tune file ").append(file.path).append(" is ignored: ");
  text.append(foreign ? "it is of another device" : file.problem).append("\n");
}
}  // namespace

template <class Args>
void log_call(const Context::Impl& context, const Args& args, double milliseconds) {
  const Dispatch& r = context.receipt;
  Line line;
  log_tune_file(line.text);
  line.text += "mblas bench " + replay(args);
  line.word("--backend", r.backend).word("--kernel", r.kernel);
  if (!r.config.empty()) line.text.append(":").append(r.config);
  if (r.staged_blocks > 0) line.text += " --host";
  char tail[96];
  std::snprintf(tail, sizeof tail, "  # %.4f ms, workspace %zu%s%s%s\n", milliseconds,
                r.workspace_bytes, r.tuned ? ", tuned" : "",
                r.epilogue.empty() ? "" : ", epilogue ",
                r.epilogue.data() ? r.epilogue.data() : "");
  line.text += tail;
  if (context.verbose > 1)
    for (const Decline& d : r.declined)
      line.text.append("#   ")
          .append(d.backend)
          .append(d.kernel.empty() ? "" : "/")
          .append(d.kernel)
          .append(" declined: ")
          .append(d.reason)
          .append("\n");
  std::fwrite(line.text.data(), 1, line.text.size(),
              stderr);  // one write: threads do not interleave
}

template void log_call(const Context::Impl&, const GemmArgs&, double);
template void log_call(const Context::Impl&, const GeamArgs&, double);
template void log_call(const Context::Impl&, const TransposeArgs&, double);
template void log_call(const Context::Impl&, const TransposeInplaceArgs&, double);
template void log_call(const Context::Impl&, const Gf256Args&, double);

}  // namespace mblas
