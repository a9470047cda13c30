// Code and tables that scroll sideways can be reached, and so scrolled, by the keyboard.
const reach = () => document.querySelectorAll("pre, .table-wrapper, div.math").forEach((one) => {
  one.scrollWidth > one.clientWidth ? one.setAttribute("tabindex", "0") : one.removeAttribute("tabindex");
});
document.addEventListener("DOMContentLoaded", reach);
addEventListener("load", reach);
addEventListener("resize", reach);
// The two columns beside the text have names of their own.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
});
