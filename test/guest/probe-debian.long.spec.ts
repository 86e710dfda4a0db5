/** The drivers come and go, and the guest restarts: with the kernel of Debian. */
import { testScenario } from './suite.ts';

await testScenario('probe', 'debian');
