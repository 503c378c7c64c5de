# How every target of the project is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(plimsoll_options INTERFACE)
target_compile_features(plimsoll_options INTERFACE cxx_std_20)
# -ffp-contract=off: the same bits on every machine and in every build type.
target_compile_options(plimsoll_options INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic
                       -Wconversion -Wsign-conversion -Wshadow -Werror)
if(PLIMSOLL_SANITIZE)
  target_compile_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE})
endif()
