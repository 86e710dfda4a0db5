/** Faults while the drivers load. */
import { testScenario } from './suite.ts';

await testScenario('faults-probe', 'debian');
