/** Faults for which Linux waits a whole minute, nearly all of it idle. */
import { testScenario } from './suite.ts';

await testScenario('faults-silence', 'debian');
