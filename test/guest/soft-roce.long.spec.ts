/** The programs of the speed comparison, in brief: they must work. */
import { testScenario } from './suite.ts';

await testScenario('soft-roce', 'debian');
