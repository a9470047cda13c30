// @ts-check
// Curves of a run while it is recorded: a page in a frame, to which later numbers are sent. The widget of dynamics_cli/live.py.

/** @param {{model: {get: (trait: string) => any, on: Function, off: Function}, el: HTMLElement}} widget */
function render({ model, el }) {
  const send = () =>
    el.querySelector("iframe")?.contentWindow?.postMessage(model.get("described"), "*");
  const show = () => {
    el.innerHTML = model.get("page");
    el.querySelector("iframe")?.addEventListener("load", send);
  };
  model.on("change:page", show);
  model.on("change:described", send);
  show();
  return () => {
    model.off("change:page", show);
    model.off("change:described", send);
  };
}

export default { render };
