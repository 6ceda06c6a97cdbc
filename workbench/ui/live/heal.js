// JupyterLab gives an output up for good when it is drawn between two of its attempts to restore a kernel's widgets, as may
// happen when a page is loaded again on a busy machine. Once the models are there, such outputs are drawn again.

const HEAL_MS = 1000;
const GIVEN_UP = "Error displaying widget: model not found"; // jupyterlab_widgets 3.0.17
const VIEW = "application/vnd.jupyter.widget-view+json";

async function drawAgain(manager) {
  if (![...document.querySelectorAll(".jupyter-widgets")].some((node) => node.textContent === GIVEN_UP)) return;
  for (const { outputs } of manager.context?.model?.cells ?? []) { // of a notebook; a dashboard has no context
    for (let place = 0; place < (outputs?.length ?? 0); place += 1) {
      const output = outputs.get(place).toJSON();
      const id = output.data?.[VIEW]?.model_id;
      if (!id || !manager.has_model(id)) continue; // such as of a kernel that is gone
      const model = await manager.get_model(id);
      if (!Object.keys(model.views ?? {}).length) outputs.set(place, output);
    }
  }
}
