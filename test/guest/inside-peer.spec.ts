/** A stock Linux in this process, and programs of ours on a simulated host at the other end of its cable. */
import { testInsideScenario } from './inside-suite.ts';

await testInsideScenario('peer');
