// report.mjs - what a reader of the HTML report relies on, tried in a real browser.

import { run } from './browser.mjs';
import './pages.mjs';
import './graphs.mjs';
import './views.mjs';
import './diff.mjs';
import './window.mjs';
import './source.mjs';
import './pictures.mjs';

await run();
