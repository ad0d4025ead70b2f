/** The operator's page. Which of its three faces is shown follows from what the server answers. */
import "./admin.css";

import { render } from "preact";

import { Page } from "./page";

const root = document.getElementById("app");
if (root !== null) {
  render(<Page />, root);
}
