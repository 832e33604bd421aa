# Installation: headers, library, the mblas command, a CMake package (find_package(mblas CONFIG),
# target mblas::mblas) and mblas.pc. All of it may be moved as a whole.
option(MBLAS_INSTALL "Define the install rules" ${PROJECT_IS_TOP_LEVEL})
if(NOT MBLAS_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(mblas_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mblas)
get_target_property(mblas_library_type mblas TYPE)

# What a program that links the static archive must bring along; the shared library has it inside. The
# static CUDA runtime is installed beside the archive, so that such a program needs no toolkit either.
set(mblas_static_openmp OFF)
set(mblas_static_cudart "")
set(mblas_pc_libs_private "")
if(mblas_library_type STREQUAL "STATIC_LIBRARY")
  set(mblas_static_openmp ${MBLAS_ENABLE_OPENMP})
  set(private_libs stdc++ m pthread ${CMAKE_DL_LIBS})
  if(MBLAS_ENABLE_OPENMP)
    list(APPEND private_libs ${OpenMP_CXX_LIB_NAMES})
  endif()
  if(MBLAS_ENABLE_CUDA OR MBLAS_ENABLE_CUBLAS)
    set(mblas_static_cudart libmblas_cudart.a)
    get_target_property(cudart_archive CUDA::cudart_static IMPORTED_LOCATION)
    install(FILES ${cudart_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR}
            RENAME ${mblas_static_cudart})
    target_link_libraries(mblas PRIVATE $<INSTALL_INTERFACE:mblas::cudart>)
    list(PREPEND private_libs mblas_cudart)
    list(APPEND private_libs rt)
  endif()
  list(REMOVE_DUPLICATES private_libs)
  list(TRANSFORM private_libs PREPEND "-l")
  list(JOIN private_libs " " mblas_pc_libs_private)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mblas DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS mblas EXPORT mblasTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(MBLAS_BUILD_CLI)
  file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(mblas_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS mblas_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT mblasTargets NAMESPACE mblas:: DESTINATION ${mblas_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/mblasConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/mblasConfig.cmake
                              INSTALL_DESTINATION ${mblas_package_dir}
                              PATH_VARS CMAKE_INSTALL_LIBDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mblasConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mblasConfig.cmake ${PROJECT_BINARY_DIR}/mblasConfigVersion.cmake
        DESTINATION ${mblas_package_dir})

file(RELATIVE_PATH mblas_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" mblas_pc_to_prefix ${mblas_pc_to_prefix})
configure_file(${CMAKE_CURRENT_LIST_DIR}/mblas.pc.in ${PROJECT_BINARY_DIR}/mblas.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mblas.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
