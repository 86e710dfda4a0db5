/** The drivers come, go, and meet faults. Much of this is waiting, for a reset or a timer. */
import { testScenario } from './suite.ts';

await testScenario('probe', 'debian');
await testScenario('faults-work', 'backports');
await testScenario('faults-probe', 'debian');
await testScenario('probe', 'backports');
await testScenario('rough-guests', 'backports');
