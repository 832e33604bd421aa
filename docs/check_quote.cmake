# Fails unless DOCUMENT holds the whole of FILE as a C++ code block.
file(READ ${DOCUMENT} document)
file(READ ${FILE} code)
string(FIND "${document}" "```cpp\n${code}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${DOCUMENT} does not quote ${FILE} literally")
endif()
