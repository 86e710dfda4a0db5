/** Loads and unloads the drivers, and restarts the guest: with a newer kernel. */
import { testScenario } from './suite.ts';

await testScenario('probe', 'backports');
