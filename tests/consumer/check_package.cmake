# Run by ctest: see CMakeLists.txt.
cmake_minimum_required(VERSION 3.25)
set(program_dir ${CMAKE_CURRENT_LIST_DIR}/program)
set(prefix ${WORK_DIR}/moved)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed ${prefix})
if(EXISTS ${prefix}/bin/mblas)
  run(${prefix}/bin/mblas info)
endif()

# With CMake, on a machine that has no package but the compiler's own.
run(${CMAKE_COMMAND} -S ${program_dir} -B ${WORK_DIR}/cmake -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX}
    -D CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON -D CMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/cmake)
run(${WORK_DIR}/cmake/uses_cpp)
run(${WORK_DIR}/cmake/uses_c)

# With pkg-config. The C program is linked as C, so mblas.pc must name all that the library needs.
find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  message(STATUS "no pkg-config here: mblas.pc was not checked")
  return()
endif()
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR}:$ENV{LD_LIBRARY_PATH})
set(static_flag "")
if(LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
  set(static_flag --static)
endif()
execute_process(COMMAND ${pkg_config} ${static_flag} --cflags --libs mblas
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} -std=c++20 ${program_dir}/uses_cpp.cpp -o ${WORK_DIR}/uses_cpp ${flags})
run(${WORK_DIR}/uses_cpp)
find_program(cc NAMES cc gcc clang REQUIRED)
run(${cc} -std=c99 -Wall -Wextra -pedantic -Werror ${program_dir}/uses_c.c -o ${WORK_DIR}/uses_c
    ${flags})
run(${WORK_DIR}/uses_c)
