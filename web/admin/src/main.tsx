/**
 * The entry point of the operator's page. The server's answers decide which of its three views is
 * shown.
 */
import "./admin.css";

import { render } from "preact";

import { Page } from "./page";

const root = document.getElementById("app");
if (root !== null) {
  render(<Page />, root);
}
