/// An HTML report: one file that holds all it needs and opens offline, from a disk as from a
/// server.
///
/// The page is made from tools/report by the build's target `report`, which needs npm, and is
/// installed beside the program. It is not compiled in: so the program builds without npm and
/// without a network, and the page can be added afterwards without building the program again.
#pragma once

#include "report/html/html_data.hpp"

#include <string>

namespace plimsoll {

/// The page without data: `report.html` of the first place that has one of the form kHtmlForm,
/// which are the folders of PLIMSOLL_PATH, the installed share folder and the build tree of the
/// program. Throws InputError that says how to get one.
[[nodiscard]] std::string read_html_template();

/// `page` in the template. The same data give the same bytes. Whatever text the data hold, no part
/// of it becomes markup or script. Throws std::invalid_argument where the template has no place for
/// data.
[[nodiscard]] std::string html_of(const HtmlPage& page, const std::string& html_template);

}  // namespace plimsoll
