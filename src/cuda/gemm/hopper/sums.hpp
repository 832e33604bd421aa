// Macros for the sums of a wgmma, which has them as operands one by one: MBLAS_SUMS_n, the numbers
// of those of n columns as text, and MBLAS_OF_n(kind), the same of an array d.
#pragma once

// clang-format off
#define MBLAS_8_FROM_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MBLAS_8_FROM_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define MBLAS_8_FROM_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define MBLAS_8_FROM_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define MBLAS_8_FROM_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define MBLAS_8_FROM_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define MBLAS_8_FROM_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define MBLAS_8_FROM_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define MBLAS_8_FROM_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define MBLAS_8_FROM_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define MBLAS_8_FROM_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define MBLAS_8_FROM_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define MBLAS_8_FROM_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define MBLAS_8_FROM_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define MBLAS_8_FROM_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define MBLAS_8_FROM_120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define MBLAS_SUMS_16 MBLAS_8_FROM_0
#define MBLAS_SUMS_32 MBLAS_SUMS_16 MBLAS_8_FROM_8
#define MBLAS_SUMS_48 MBLAS_SUMS_32 MBLAS_8_FROM_16
#define MBLAS_SUMS_64 MBLAS_SUMS_48 MBLAS_8_FROM_24
#define MBLAS_SUMS_80 MBLAS_SUMS_64 MBLAS_8_FROM_32
#define MBLAS_SUMS_96 MBLAS_SUMS_80 MBLAS_8_FROM_40
#define MBLAS_SUMS_112 MBLAS_SUMS_96 MBLAS_8_FROM_48
#define MBLAS_SUMS_128 MBLAS_SUMS_112 MBLAS_8_FROM_56
#define MBLAS_SUMS_144 MBLAS_SUMS_128 MBLAS_8_FROM_64
#define MBLAS_SUMS_160 MBLAS_SUMS_144 MBLAS_8_FROM_72
#define MBLAS_SUMS_176 MBLAS_SUMS_160 MBLAS_8_FROM_80
#define MBLAS_SUMS_192 MBLAS_SUMS_176 MBLAS_8_FROM_88
#define MBLAS_SUMS_208 MBLAS_SUMS_192 MBLAS_8_FROM_96
#define MBLAS_SUMS_224 MBLAS_SUMS_208 MBLAS_8_FROM_104
#define MBLAS_SUMS_240 MBLAS_SUMS_224 MBLAS_8_FROM_112
#define MBLAS_SUMS_256 MBLAS_SUMS_240 MBLAS_8_FROM_120

#define MBLAS_8_OF(kind, i) \
  kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3]), kind(d[i + 4]), kind(d[i + 5]), kind(d[i + 6]), kind(d[i + 7])
#define MBLAS_OF_16(kind) MBLAS_8_OF(kind, 0)
#define MBLAS_OF_32(kind) MBLAS_OF_16(kind), MBLAS_8_OF(kind, 8)
#define MBLAS_OF_48(kind) MBLAS_OF_32(kind), MBLAS_8_OF(kind, 16)
#define MBLAS_OF_64(kind) MBLAS_OF_48(kind), MBLAS_8_OF(kind, 24)
#define MBLAS_OF_80(kind) MBLAS_OF_64(kind), MBLAS_8_OF(kind, 32)
#define MBLAS_OF_96(kind) MBLAS_OF_80(kind), MBLAS_8_OF(kind, 40)
#define MBLAS_OF_112(kind) MBLAS_OF_96(kind), MBLAS_8_OF(kind, 48)
#define MBLAS_OF_128(kind) MBLAS_OF_112(kind), MBLAS_8_OF(kind, 56)
#define MBLAS_OF_144(kind) MBLAS_OF_128(kind), MBLAS_8_OF(kind, 64)
#define MBLAS_OF_160(kind) MBLAS_OF_144(kind), MBLAS_8_OF(kind, 72)
#define MBLAS_OF_176(kind) MBLAS_OF_160(kind), MBLAS_8_OF(kind, 80)
#define MBLAS_OF_192(kind) MBLAS_OF_176(kind), MBLAS_8_OF(kind, 88)
#define MBLAS_OF_208(kind) MBLAS_OF_192(kind), MBLAS_8_OF(kind, 96)
#define MBLAS_OF_224(kind) MBLAS_OF_208(kind), MBLAS_8_OF(kind, 104)
#define MBLAS_OF_240(kind) MBLAS_OF_224(kind), MBLAS_8_OF(kind, 112)
#define MBLAS_OF_256(kind) MBLAS_OF_240(kind), MBLAS_8_OF(kind, 120)
// clang-format on
