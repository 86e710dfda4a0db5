/** Faults while drivers and programs work. Much of this is waiting, for a reset or a timer. */
import { testScenario } from './suite.ts';

await testScenario('faults-work', 'backports');
