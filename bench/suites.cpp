#include "suites.hpp"

#include <stdexcept>

#include "case_flags.hpp"

namespace mblas::bench {
namespace {

// Flags that are not given have the defaults of case.hpp: row-major, no transposition, alpha 1,
// beta 0.
const std::vector<Suite>& table() {
  static const std::vector<Suite> suites = {
      {"quick",
       "a few small cases of every operation",
       "",
       20,
       {
           "gemm --type f32 -m 256 -n m -k m",
           "gemm --type f32 -m 255 -n 257 -k 253 --transA T --transB T --alpha 0.5 --beta 2",
           "gemm --type f64 -m 256 -n m -k m",
           "gemm --type cf32 -m 128 -n m -k m --transA C",
           "gemm --type f16 --out f32 -m 192 -n m -k m",
           "gemm --type i8 -m 192 -n m -k m",
           "gemm --type f32 -m 16 -n m -k m --batch 1000",
           "geam --type f32 -m 1000 -n 999 --transB T --beta 2",
           "transpose --type b4 -m 1024 -n 1000",
           "transpose --type b1 -m 1023 -n 1025",
           "transpose_inplace --type b4 -m 512 -n 512",
           "gf256 -m 4 -n 1048576 -k 10",
       }},
      // The shapes of the documents whose ladders of kernels the tables hold, and their neighbours.
      {"seeds",
       "the ladders of kernels on the shapes of the documents that they come from",
       "all",
       100,
       {
           "transpose --type b4 -m 16384 -n 16384",
           "geam --type f32 -m 16384 -n 16384 --transA T",
           "transpose --type b4 -m 4096 -n 3072",
           "transpose --type b4 -m 1024:8192:*2 -n m",
           "transpose --type b8 -m 2048,4096,8192 -n m",
           "transpose --type b2 -m 4096 -n 4096",
           "transpose --type b1 -m 4096 -n 4096",
           "transpose_inplace --type b4 -m 4096 -n 4096",
           "gemm --type f32 -m 128:4096:*2 -n m -k m",
           "gemm --type f32 -m 4096 -n m -k m --alpha 0.5 --beta 3",
           "gemm --type f64 -m 256:4096:*2 -n m -k m",
           "gemm --type f64 --transA T -m 4096 -n m -k m --data formulas",
           "gf256 -m 4 -n 1048576,16777216 -k 10",
           "gf256 -m 16,100 -n 1048576 -k 32,100",
       },
       {
           "transpose --type b4 -m 4096 -n 3072",
           "gemm --type f32,f64 -m 1024 -n m -k m",
           "gf256 -m 4 -n 1048576,16777216 -k 10",
           "gf256 -m 16,100 -n 1048576 -k 32,100",
       },
       false,
       true,
       "cublas"},
      {"geam",
       "transposes and sums: every element size, long and thin, odd, batched, in place",
       "",
       20,
       {
           "transpose --type b4,b8,b16 -m 8192,16384 -n m",
           "transpose --type b4 -m 4096 -n 3072",
           "transpose --type b4 -m 2048 -n 2048",
           "transpose --type b4 -m 4093 -n 4099",
           "transpose --type b4 -m 16383 -n 16385",
           "transpose --type b4 -m 1000000 -n 16,100",
           "transpose --type b4 -m 16,100 -n 1000000",
           "transpose --type b4 -m 3 -n 50000000",
           "transpose --type b4 -m 50000000 -n 3",
           "transpose --type b1,b2 -m 8192,16384 -n m",
           "transpose --type b1,b2 -m 4093 -n 4099",
           "transpose --type b1,b2 -m 16383 -n 16385",
           "transpose --type b4 -m 1000 -n 1000",
           "transpose --type b8,b16 -m 4093 -n 4099",
           "transpose --type b4 --layout C -m 12288 -n 4096",
           "transpose --type b4 -m 8192 -n 8192 --lda 8200 --ldb 8204",
           "transpose --type b4 -m 8192 -n 8192 --lda 8193 --ldb 8195 --offset 1",
           "transpose --type b4 -m 4 -n 4 --batch 4000000",
           "transpose --type b4 -m 3 -n 5 --batch 4000000",
           "transpose --type b4 -m 32 -n 32 --batch 65536",
           "transpose --type b4 -m 64 -n 64 --batch 16384",
           "transpose --type b4 -m 100 -n 100 --batch 6711",
           "transpose --type b2 -m 64 -n 64 --batch 32768",
           "transpose_inplace --type b4 -m 16384 -n 16384",
           "transpose_inplace --type b4 -m 16384 -n 8192",
           "transpose_inplace --type b4 -m 10007 -n 5003",
           "transpose_inplace --type b8 -m 8192 -n 8192",
           "transpose_inplace --type b1 -m 8192 -n 8192",
           "transpose_inplace --type b4 -m 64 -n 64 --batch 16384",
           "geam --type f32 -m 16384 -n 16384 --transA N,T --transB T --alpha 1.5 --beta -0.5",
           "geam --type f32 -m 16384 -n 16384 --beta 1",
           "geam --type f32,f64,cf32 -m 8192 -n 8192 --transA T",
           "geam --type f16,bf16 -m 8192 -n 8192 --transA T --beta 1",
           "geam --type cf32,cf64 -m 4096 -n 4096 --transA C --transB N,J --alpha 1,2 --beta 0.5",
           "geam --type f32 -m 4093 -n 4099 --transA T --transB N,T --beta 2",
           "geam --type f64 -m 4096 -n 3072 --transB T --beta 2",
           "geam --type f32 -m 8192 -n 8192 --transB T --beta 2 --alias A",
           "geam --type f32 -m 8192 -n 8192 --transA T --beta 2 --alias B",
           "geam --type f32 -m 32 -n 32 --batch 65536 --transB T --beta 1",
           "geam --type f64 -m 1000000 -n 16 --transA T --beta 1 --alias B",
           "geam --type bf16 -m 16383 -n 16385 --transA N,T",
           "geam --type f32 -m 16384 -n 16384 --transA T",
           "geam --type f32 -m 3072 -n 4096 --transA T",
           "geam --type f32 -m 100,16 -n 1000000 --transA T",
           "geam --type f32 -m 1000000 -n 100,16 --transA T",
           "geam --type f32 -m 16385 -n 16383 --transA T",
       },
       {
           "transpose --type b1,b2,b4,b8,b16 -m 1024 -n 1024",
           "transpose --type b1,b2,b4,b8,b16 -m 4096 -n 3072",
           "transpose --type b1,b2,b4,b8,b16 -m 4093 -n 4099",
           "transpose --type b1,b2,b4,b8,b16 -m 100 -n 1000000",
           "transpose --type b1,b2,b4,b8,b16 -m 1000000 -n 16",
           "transpose --type b4,b8 -m 8192,16384 -n m",
           "transpose_inplace --type b4 -m 8192 -n 8192,4096",
           "transpose_inplace --type b4 -m 4096 -n 3072",
           "transpose_inplace --type b4 -m 10007 -n 5003",
           "geam --type f32,f64 -m 4096 -n 4096 --transA N,T --transB T --alpha 1.5 --beta -0.5",
       }},
      {"gemm",
       "matrix products of every type: square, odd, skewed, all pairs of ops",
       "",
       20,
       {
           "gemm --type f32 --compute pedantic --transA N,T --transB N,T -m 2048:16384:*2 -n m -k "
           "m",
           "gemm --type f32 -m 512:8192:*2 -n m -k m",
           "gemm --type f32 -m 1025 -n 1027 -k 1029 --transA N,T --transB N,T",
           "gemm --type f32 -m 4095 -n 4097 -k 4093",
           "gemm --type f32 -m 8192 -n 1024 -k 4096",
           "gemm --type f32 -m 1024 -n 8192 -k 4096",
           "gemm --type f32 -m 4096 -n m -k m --alpha 0.5 --beta 2",
           "gemm --type f64 --transA N,T --transB N,T -m 1024:8192:*2 -n m -k m",
           "gemm --type f64 -m 4095 -n 4097 -k 4093",
           "gemm --type f64 -m 1025 -n 1027 -k 1029 --transA N,T --transB N,T",
           "gemm --type f64 -m 3072 -n m -k m --alpha 0.5 --beta 2",
           "gemm --type cf32,cf64 -m 1024,2048,4096 -n m -k m",
           "gemm --type cf64 -m 1025 -n 1027 -k 1029",
           "gemm --type cf32 --transA C --transB N,C -m 2048 -n m -k m",
           "gemm --type bf16,f16 --transA N,T --transB N,T -m 4096,8192,16384 -n m -k m",
           "gemm --type bf16 -m 512,1024,1536,2048,2304,3072,5120 -n m -k m",
           "gemm --type f16 -m 512,1024,2048,3072,5120 -n m -k m",
           "gemm --type bf16 --out f32 -m 4096,8192 -n m -k m",
           "gemm --type bf16 --transB T -m 16,128,1024,8192 -n 4096,14336 -k 4096,14336",
           "gemm --type bf16,f16 -m 4095 -n 4097 -k 4093",
           "gemm --type bf16,f16 -m 1025 -n 1027 -k 1029",
           "gemm --type bf16 -m 4096 -n m -k m --lda 4097 --ldb 4099 --ldc 4101",
           "gemm --type bf16 -m 4096 -n m -k m --offset 1",
           "gemm --type f16 -m 4096 -n m -k m --alpha 0.5 --beta 2",
           "gemm --type bf16 -m 4096,8192 -n 4096 -k 4096 --transB N,T --bias columns --activation "
           "gelu",
           "gemm --type bf16 -m 4096 -n 4096 -k 4096 --bias rows --activation relu --scale 0.5",
           "gemm --type i8 --out f32 --transB T -m 4096 -n m -k m --alpha 0.01",
           "gemm --type i8 -m 4095 -n 4097 -k 4093",
           "gemm --type f32 --compute tf32 --transA N,T --transB N,T -m 1024:16384:*4 -n m -k m",
           "gemm --type f32 --compute tf32 -m 4095 -n 4097 -k 4093",
           "gemm --type i8 --transA N,T --transB N,T -m 2048:16384:*2 -n m -k m",
       },
       {
           "gemm --type f32,f64 --compute pedantic -m 4,8,16,32,63,128,256,512,1023,2048,4096 -n m "
           "-k m",
           "gemm --type f32,f64 --compute pedantic -m 64,511,1024 -n m -k m --transA N,T --transB "
           "N,T",
           "gemm --type f32,f64 --compute pedantic -m 1025 -n 1027 -k 1029 --transA N,T --transB "
           "N,T",
           "gemm --type f32 -m 4 -n 4 -k 4 --batch 5461",
           "gemm --type f32 -m 8 -n 8 -k 8 --batch 1365",
           "gemm --type f32 -m 16 -n 16 -k 16 --batch 341",
           "gemm --type f32 -m 32 -n 32 -k 32 --batch 85",
           "gemm --type f64 -m 4 -n 4 -k 4 --batch 2730",
           "gemm --type f64 -m 8 -n 8 -k 8 --batch 682",
           "gemm --type f64 -m 16 -n 16 -k 16 --batch 170",
           "gemm --type f64 -m 32 -n 32 -k 32 --batch 42",
           "gemm --type f32,f64 -m 8 -n 8 -k 100000",
           "gemm --type f32,f64 -m 100000 -n 16 -k 16",
           "gemm --type f32,f64 -m 4096 -n 4096 -k 32",
           "gemm --type f32,f64 -m 4096 -n 1 -k 4096",
           "gemm --type f32,f64 -m 1 -n 4096 -k 4096",
           "gemm --type f32,f64 -m 1024 -n m -k m --alpha 0.5 --beta 0.25",
           "gemm --type cf32,cf64 -m 256,1024 -n m -k m",
           "gemm --type f32 -m 1024,2048,4096 -n m -k m",
           "gemm --type bf16 -m 256:4096:*2 -n m -k m",
           "gemm --type bf16 --out f32 -m 1024 -n m -k m",
           "gemm --type f16,i8 -m 1024 -n m -k m",
       },
       true},
      {"small",
       "tiny matrices in batches, vectors in all but name, long sums",
       "",
       20,
       {
           "gemm --type f32 -m 4,8,16,32 -n m -k m --batch 100000",
           "gemm --type f64 -m 4,8,16,32 -n m -k m --batch 50000",
           "gemm --type bf16,f16 -m 8,16,32 -n m -k m --batch 100000",
           "gemm --type f32 -m 16 -n m -k m --batch 10000 --pointers",
           "gemm --type cf32 -m 8,16 -n m -k m --batch 10000",
           "gemm --type f32 -m 4:512:*2 -n m -k m",
           "gemm --type f32 -m 63,127,511 -n m -k m",
           "gemm --type f64 -m 4:512:*2 -n m -k m",
           "gemm --type bf16 -m 64:512:*2 -n m -k m",
           "gemm --type f32 -m 1,8,16 -n 4096 -k 4096",
           "gemm --type f32 -m 4096 -n 1,8,16 -k 4096",
           "gemm --type f32,f64 -m 64 -n 64 -k 262144",
           "gemm --type f32,f64 -m 65536 -n 64 -k 64",
           "gemm --type f32 -m 100000 -n 16 -k 16",
           "gemm --type f32 -m 8 -n 8 -k 100000",
           "gemm --type f32 -m 4096 -n 4096 -k 32",
       }},
      {"accuracy",
       "errors against the bound: distributions of operands by length of the sums",
       "",
       20,
       {
           "gemm --type f32,f64 -m 64 -n 63 -k 1,16,255,4096,65536 --data "
           "uniform,positive,wide,integers,special",
           "gemm --type cf32,cf64 -m 48 -n 49 -k 1,255,4096 --data uniform,positive,wide,special "
           "--transA C",
           "gemm --type f16,bf16 --out f32 -m 64 -n 63 -k 1,255,4096 --data "
           "uniform,positive,wide,special",
           "gemm --type f16,bf16 -m 64 -n 63 -k 255 --data uniform,positive,wide,special",
           "gemm --type f32 -m 64 -n 63 -k 255 --alpha 0.3 --beta -1.7 --data uniform,wide",
           "gemm --type i8 -m 64 -n 63 -k 1,255,4096 --data uniform,positive,integers",
           "geam --type f32,f64,cf32,cf64,f16,bf16 -m 300 -n 301 --transB T --alpha 0.3 --beta "
           "-1.7 "
           "--data uniform,wide,special",
       }},
      {"gf256",
       "products over GF(2^8): coding of storage stripes, and large square ones",
       "",
       20,
       {
           "gf256 -m 4 -k 10 -n 16384,65536,1048576,16777216,100000000",
           "gf256 -m 2 -k 4 -n 16384,65536,1048576,16777216,200000000",
           "gf256 -m 4 -k 20 -n 65536,1048576,50000000",
           "gf256 -m 16 -k 32 -n 65536,1048576,16777216",
           "gf256 -m 20 -k 100 -n 65536,1048576,8388608",
           "gf256 -m 4 -k 10 -n 1048577,16777259",
           "gf256 -m 4 -k 10 -n 16777216 --pointers",
           "gf256 -m 4 -k 1 -n 16777216 --accumulate",
           "gf256 -m 4 -k 10 -n 16777216 --accumulate",
           "gf256 -m 4 -k 10 -n 1048576 --offset 1",
           "gf256 -m 4 -k 10 -n 1048576 --poly 0x11B",
           "gf256 -m 1,3,5 -k 10 -n 1048576",
           "gf256 -m 256:8192:*2 -n m -k m",
       },
       {
           "gf256 -m 4 -k 10 -n 16384,65536,1048576,16777216",
           "gf256 -m 2 -k 4 -n 16384,65536,1048576,16777216",
           "gf256 -m 4 -k 20 -n 16384,65536,1048576,16777216",
           "gf256 -m 16 -k 32 -n 16384,65536,1048576,16777216",
           "gf256 -m 16 -k 32 -n 16777216 --ldb 16781376 --ldc 16781376",
           "gf256 -m 20 -k 100 -n 16384,65536,1048576,8388608",
           "gf256 -m 4 -k 10 -n 16384,16777216 --pointers",
           "gf256 -m 4 -k 1 -n 16384,16777216 --accumulate",
           "gf256 -m 4 -k 10 -n 16384,16777216 --accumulate",
           "gf256 -m 4 -k 10 -n 16383,1048577,16777259",
           "gf256 -m 4 -k 10 -n 1048576 --offset 1",
           "gf256 -m 4 -k 10 -n 1048576 --poly 0x11B",
           "gf256 -m 1,3,5,8,9 -k 10 -n 1048576",
           "gf256 -m 64,256,1024,2048 -n m -k m",
       },
       true},
  };
  return suites;
}

}  // namespace

std::span<const Suite> suites() { return table(); }

const Suite& find_suite(std::string_view name) {
  std::string known;
  for (const Suite& suite : suites()) {
    if (suite.name == name) return suite;
    known += (known.empty() ? "" : ", ") + std::string(suite.name);
  }
  throw std::invalid_argument("no suite '" + std::string(name) + "': " + known);
}

std::vector<cases::Case> cases_of(std::span<const std::string_view> lines) {
  std::vector<cases::Case> all;
  for (const std::string_view line : lines)
    for (const cases::Case& c : expand_line(line)) all.push_back(c);
  return all;
}

}  // namespace mblas::bench
