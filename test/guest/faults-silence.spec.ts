/** What Linux waits a whole minute for, nearly all of it idle. */
import { testScenario } from './suite.ts';

await testScenario('faults-silence', 'debian');
