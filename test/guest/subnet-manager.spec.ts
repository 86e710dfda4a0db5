/** A stock subnet manager, and what needs one. */
import { testScenario } from './suite.ts';

await testScenario('subnet-manager', 'debian');
