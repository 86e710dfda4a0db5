/** Files over RDMA between two guests. */
import { testScenario } from './suite.ts';

await testScenario('nfs', 'debian');
