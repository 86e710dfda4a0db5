/** What is compared by speed, in brief: that it works. */
import { testScenario } from './suite.ts';

await testScenario('soft-roce', 'debian');
