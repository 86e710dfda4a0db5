/** The drivers come and go, and the guest restarts: with a newer kernel. */
import { testScenario } from './suite.ts';

await testScenario('probe', 'backports');
