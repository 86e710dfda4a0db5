/** Frames move between two guests whose adapters are Ethernet cards to the stock driver. */
import { testScenario } from './suite.ts';

await testScenario('ethernet', 'debian');
