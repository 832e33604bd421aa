# What is built: each MBLAS_ENABLE_… defaults to what this machine has, and asking for what is missing
# is an error.
include(CheckLanguage)

option(BUILD_SHARED_LIBS "Build libmblas as a shared library" ON)
option(MBLAS_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(MBLAS_BUILD_CLI "Build the mblas command" ${PROJECT_IS_TOP_LEVEL})
option(MBLAS_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(MBLAS_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(MBLAS_EIGEN_FLAGS "" CACHE STRING
    "Compiler flags of the eigen backend, e.g. -march=native to race it on the machine that builds it")
option(MBLAS_STALLS "Let warps of CUDA kernels stall at random, so that tests find waits that are missing" OFF)
set(MBLAS_SANITIZE "" CACHE STRING "Sanitizers for host code, e.g. address,undefined")

find_package(Threads REQUIRED)

find_package(OpenMP QUIET COMPONENTS CXX)
option(MBLAS_ENABLE_OPENMP "Thread the CPU kernels with OpenMP (else with std::thread)"
       ${OpenMP_CXX_FOUND})
if(MBLAS_ENABLE_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()

find_package(Eigen3 3.4 QUIET NO_MODULE)
option(MBLAS_ENABLE_EIGEN "Build the eigen backend" ${Eigen3_FOUND})
if(MBLAS_ENABLE_EIGEN)
  find_package(Eigen3 3.4 REQUIRED NO_MODULE)
endif()

# The CUDA backend needs nvcc; the cuBLAS backend only the toolkit's headers and static runtime.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)  # others run the code for 80 that the driver compiles
endif()
if(NOT DEFINED MBLAS_ENABLE_CUDA OR MBLAS_ENABLE_CUDA)
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER)
  set(mblas_cuda_found ON)
else()
  set(mblas_cuda_found OFF)
endif()
option(MBLAS_ENABLE_CUDA "Build the cuda backend (needs nvcc)" ${mblas_cuda_found})
if(MBLAS_ENABLE_CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows nvcc's options up to C++17
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
endif()
find_package(CUDAToolkit 12 QUIET)
set(mblas_cublas_found OFF)
if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
  find_path(MBLAS_CUBLAS_INCLUDE_DIR cublasLt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
  mark_as_advanced(MBLAS_CUBLAS_INCLUDE_DIR)
  if(MBLAS_CUBLAS_INCLUDE_DIR)
    set(mblas_cublas_found ON)
  endif()
endif()
option(MBLAS_ENABLE_CUBLAS "Build the cublas backend (needs the toolkit's headers)"
       ${mblas_cublas_found})
if((MBLAS_ENABLE_CUDA OR MBLAS_ENABLE_CUBLAS) AND NOT TARGET CUDA::cudart_static)
  message(FATAL_ERROR "MBLAS_ENABLE_CUDA and MBLAS_ENABLE_CUBLAS need the CUDA toolkit's static runtime")
endif()
if(MBLAS_ENABLE_CUBLAS AND NOT mblas_cublas_found)
  message(FATAL_ERROR "MBLAS_ENABLE_CUBLAS needs cublasLt.h")
endif()

# Warnings and sanitizers, for every target of the project.
add_library(mblas_build_flags INTERFACE)
target_compile_options(mblas_build_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MBLAS_WERROR}>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${MBLAS_WERROR}>>:-Werror=all-warnings -Xcompiler=-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of GCC 12 on string concatenation (GCC bug 105651).
  target_compile_options(mblas_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(MBLAS_SANITIZE)
  target_compile_options(mblas_build_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MBLAS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>
    # The checks that sanitizers insert make GCC see uninitialised members in its own headers.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
    # Among the checks Clang does not vectorise the loops that are marked for it.
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
  target_link_options(mblas_build_flags INTERFACE -fsanitize=${MBLAS_SANITIZE})
endif()

message(STATUS "mblas ${PROJECT_VERSION}: OpenMP ${MBLAS_ENABLE_OPENMP}, Eigen ${MBLAS_ENABLE_EIGEN}, "
               "CUDA ${MBLAS_ENABLE_CUDA}, cuBLAS ${MBLAS_ENABLE_CUBLAS}")
