// The form of the data that the page reads; the program writes it into pages of this form only (sim/report/html/html_data.hpp).
export const FORM = 1;
