/// `repeat:` keeps long lists short.
///
///   chain:
///     - repeat: 100000
///       items:
///         - {name: "s{i}", forward: 1 ms, backward: 2 ms, saved: 1 MiB}
///
/// stands for the stages s1 .. s100000. In texts (not in keys) of repeated items `{i}` becomes the
/// running number, counted from 1, of the innermost repeat around it, `{j}` that of the next one
/// out, `{k}` that of the third; beyond the outermost they are left as written. Copies keep the
/// position of the item. (In flow style, `{...}` and `[...]`, a text with braces needs quotes.)
#pragma once

#include "base/document.hpp"

namespace plimsoll {

/// Expands, in every list at or below `list`, the items of the form {repeat: N, items: [...]} in
/// place. Errors (N not a positive whole number, no `items`, other keys, more values than the
/// limit) go to `diagnostics`; the tree is then only good for finding further errors.
/// O(values of the result).
void expand_repeats(Node& list, const DocumentLimits& limits, Diagnostics& diagnostics);

}  // namespace plimsoll
