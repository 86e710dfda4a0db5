/** Data moves. Last comes what is compared by speed: by then the other files have mostly done. */
import { testScenario } from './suite.ts';

await testScenario('loopback', 'debian');
await testScenario('cable', 'backports');
await testScenario('soft-roce', 'debian');
