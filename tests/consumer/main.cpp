#include "base/quantity.hpp"

#include <iostream>

int main() {
  std::cout << "carries " << plimsoll::to_text(plimsoll::Bytes{3} * (1LL << 29)) << '\n';
}
