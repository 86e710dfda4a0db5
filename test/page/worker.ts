/** Code of the page's worker. */
import { allRuns } from './runs.ts';

declare const postMessage: (message: string) => void;

postMessage(JSON.stringify(await allRuns()));
