# How every target of the project is compiled, and where programs go.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(plimsoll_options INTERFACE)
target_compile_features(plimsoll_options INTERFACE cxx_std_20)
# -ffp-contract=off: the same bits on every machine and in every build type.
target_compile_options(plimsoll_options INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic
                       -Wconversion -Wsign-conversion -Wshadow
                       -Wno-missing-field-initializers -Werror)
# g++ 12 sees overlapping copies in "literal" + std::string that are none (GCC bug 105651).
target_compile_options(plimsoll_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(PLIMSOLL_SANITIZE)
  # With sanitizers on, g++ 12 finds uninitialised reads in the standard library that are none.
  target_compile_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE})
endif()
