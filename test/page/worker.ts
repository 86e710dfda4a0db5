/** What the page's worker runs. */
import { allRuns } from './runs.ts';

declare const postMessage: (message: string) => void;

postMessage(JSON.stringify(await allRuns()));
