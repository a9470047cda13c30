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
// Blocks can be copied: of a console the commands, without prompts and output.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.highlight > pre").forEach((block) => {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    const lines = block.textContent.trimEnd().split("\n");
    const commands = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    await navigator.clipboard.writeText((commands.length ? commands : lines).join("\n"));
    button.textContent = "copied";
    setTimeout(() => button.textContent = "copy", 1500);
  });
  block.parentElement.append(button);
}));
// Escape closes the menus of a narrow screen.
addEventListener("keydown", ({ key }) => {
  if (key === "Escape") document.querySelectorAll("#__navigation, #__toc").forEach((box) => box.checked = false);
});
