// libfmt's functions, compiled once from its own header for what is linked without libfmt (rdmarun, since each library that
// must be loaded costs a start half a millisecond). Its header-only mode would compile them in every file that formats
// a line. Built into a library of its own; Debian has libfmt as a shared library only.
#include <fmt/format-inl.h>

namespace fmt {

// The templates that formatting calls and format.h only declares.
template void detail::buffer<char>::append(const char*, const char*);
template void detail::vformat_to<char>(detail::buffer<char>&, string_view, format_args, detail::locale_ref);
template detail::thousands_sep_result<char> detail::thousands_sep_impl<char>(detail::locale_ref);
template char detail::decimal_point_impl<char>(detail::locale_ref);

}  // namespace fmt
