/**
 * The Plan app's entry point.
 */
import { render } from "preact";
import { Boot } from "./boot.js";
import { showTheme } from "./theme.js";
import { keepCompositionApart } from "./ui/composition.js";
import { closeLayersOnBack } from "./ui/layers.js";
import "../../shared/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/layout.css";
import "./styles/sidebar.css";
import "./styles/items.css";
import "./styles/feedback.css";
import "./styles/panel.css";
import "./styles/dialogs.css";
import "./styles/account.css";
import "./styles/print.css";

showTheme();
closeLayersOnBack();
keepCompositionApart();
const root = document.getElementById("app");
if (root !== null) render(<Boot />, root);
