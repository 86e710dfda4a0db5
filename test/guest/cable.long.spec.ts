/** Data moves between two adapters of a guest. */
import { testScenario } from './suite.ts';

await testScenario('cable', 'backports');
