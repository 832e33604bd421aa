// mblas: dense matrix products, sums and transposes over exchangeable CPU and GPU backends.
#pragma once

#include "mblas/accuracy.hpp"
#include "mblas/backend.hpp"
#include "mblas/context.hpp"
#include "mblas/epilogue.hpp"
#include "mblas/error.hpp"
#include "mblas/geam.hpp"
#include "mblas/gemm.hpp"
#include "mblas/gf256.hpp"
#include "mblas/launches.hpp"
#include "mblas/plan.hpp"
#include "mblas/transpose.hpp"
#include "mblas/tune.hpp"
#include "mblas/types.hpp"
#include "mblas/version.hpp"
