// Symbol visibility: the library is built with hidden symbols; what carries MBLAS_EXPORT is the
// API.
#pragma once

#define MBLAS_EXPORT __attribute__((visibility("default")))
