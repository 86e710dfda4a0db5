/** Faults while drivers and programs work. Most of the time is waiting for a reset or a timer. */
import { testScenario } from './suite.ts';

await testScenario('faults-work', 'backports');
