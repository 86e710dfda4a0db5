/** Loads and unloads the drivers, and restarts the guest: with Debian's kernel. */
import { testScenario } from './suite.ts';

await testScenario('probe', 'debian');
