#include "scenario/document/memo.hpp"

namespace plimsoll {

namespace {

void append(const Node& node, std::string& key) {
  switch (node.kind()) {
    case Node::Kind::null:
      key += '~';
      return;
    case Node::Kind::scalar:
      if (node.is_quoted()) key += '\'';
      key += key_text(node.scalar());
      return;
    case Node::Kind::sequence:
      key += '[';
      for (const Node& item : node.items()) append(item, key);
      key += ']';
      return;
    case Node::Kind::mapping:
      key += '{';
      for (const auto& [name, value] : node.entries()) {
        append(name, key);
        append(value, key);
      }
      key += '}';
      return;
  }
}

}  // namespace

std::string key_text(std::string_view text) {
  // With its length before it no text can run into the next.
  return std::to_string(text.size()) + ':' + std::string(text);
}

std::string key_text(const Node& node) {
  std::string key;
  append(node, key);
  return key;
}

}  // namespace plimsoll
