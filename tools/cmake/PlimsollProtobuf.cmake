# plimsoll_add_proto(FLOOR PATH) compiles PATH.proto of the folder that calls it into the library, for use by FLOOR. PATH is the
# file's name as seen from sim/ ("plan/plan"): protoc makes the include "plan/plan.pb.h" of it. The code is private, compiled
# once, as it comes; an object library of its own, since a rule for a generated file serves the targets of its own folder only.
function(plimsoll_add_proto floor path)
  get_filename_component(name ${path} NAME)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(code ${generated}/${path}.pb.cc ${generated}/${path}.pb.h)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${code}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/sim --cpp_out=${generated}
            ${PROJECT_SOURCE_DIR}/sim/${path}.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/sim/${path}.proto protobuf::protoc
    COMMENT "Generating ${name}.pb.cc"
    VERBATIM)
  set(objects plimsoll_${name}_proto)
  add_library(${objects} OBJECT ${code})
  # The library of Protocol Buffers does most of the work; -Og halves the time that its generated code takes to compile.
  target_compile_options(${objects} PRIVATE -w $<$<CONFIG:Release>:-Og>)
  target_include_directories(${objects} SYSTEM PRIVATE ${generated})
  target_link_libraries(${objects} PRIVATE plimsoll_options protobuf::libprotobuf)
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE $<BOOL:${BUILD_SHARED_LIBS}>)

  target_sources(plimsoll PRIVATE $<TARGET_OBJECTS:${objects}>)
  target_include_directories(plimsoll_${floor} SYSTEM PRIVATE ${generated})
  add_dependencies(plimsoll_${floor} ${objects})
endfunction()
