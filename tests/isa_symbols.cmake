# Fails where one of OBJECTS defines a weak symbol (or a unique one, which is weak in effect).
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only --demangle ${object} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [WwVvu] [^\n]*" weak "${symbols}")
  if(weak)
    message(SEND_ERROR "${object} defines weak symbols:\n${weak}")
  endif()
endforeach()
