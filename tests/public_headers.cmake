# Fails where a public header includes what an application must not need.
file(GLOB headers ${INCLUDE_DIR}/mblas/*)
foreach(header IN LISTS headers)
  file(STRINGS ${header} found REGEX "# *include *[<\"](cu|Eigen|omp|unsupported)")
  if(found)
    message(SEND_ERROR "${header}: ${found}")
  endif()
endforeach()
