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
                       -Wno-missing-field-initializers)
# A new compiler's new warning stops us, not those who build Plimsoll within their own project.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(plimsoll_options INTERFACE -Werror)
endif()
# g++ 12 sees copies that overlap or overflow in "literal" + std::string where none do (GCC bug 105651), and uninitialised
# reads of empty std::optional (GCC bug 80635). Sanitizers and clang look for both in `./tools/test --full`.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(plimsoll_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                         -Wno-maybe-uninitialized)
endif()
# g++ collects its garbage from 128 MiB on; from 1 GiB on, which few units reach, it takes a fourteenth less time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(plimsoll_options INTERFACE --param=ggc-min-heapsize=1048576)
endif()
if(PLIMSOLL_SANITIZE)
  target_compile_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(plimsoll_options INTERFACE -fsanitize=${PLIMSOLL_SANITIZE})
endif()

# plimsoll_compile_by_folder(TARGET): compiles whole folders as one unit: neighbours in the order of the target's sources, up to
# PLIMSOLL_UNIT_BYTES, or one larger folder. The headers of the standard library and of fmt cost as much as a thousand lines of
# ours; a unit pays for them once. What is in an unnamed namespace must have a name of its own within its unit. With
# PLIMSOLL_COMPILE_BY_FOLDER=OFF each source compiles alone, which finds an #include that is missing.
function(plimsoll_compile_by_folder target)
  if(NOT PLIMSOLL_COMPILE_BY_FOLDER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  plimsoll_folders_of(sources folders)
  set(bytes 0)
  foreach(folder IN LISTS folders)
    plimsoll_bytes_of("${in_${folder}}" more)
    math(EXPR bytes "${bytes} + ${more}")
    if(NOT DEFINED unit OR bytes GREATER PLIMSOLL_UNIT_BYTES)
      set(unit ${folder})
      set(bytes ${more})
    endif()
    set_source_files_properties(${in_${folder}} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A class that is private to its .cpp may hold members of unnamed namespaces; in a unit of several files g++ warns of that.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# plimsoll_folders_of(SOURCES OUT): the folders of the list SOURCES as identifiers, in the order in which they come first, and
# in_FOLDER, the sources of each.
macro(plimsoll_folders_of sources out)
  set(${out})
  foreach(source IN LISTS ${sources})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE absolute)
    cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    cmake_path(GET absolute PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND in_${folder} ${source})
    list(APPEND ${out} ${folder})
  endforeach()
  list(REMOVE_DUPLICATES ${out})
endmacro()

function(plimsoll_bytes_of sources out)
  set(sum 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    file(SIZE ${source} bytes)
    math(EXPR sum "${sum} + ${bytes}")
  endforeach()
  set(${out} ${sum} PARENT_SCOPE)
endfunction()
