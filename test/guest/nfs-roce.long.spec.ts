/** Files over RDMA between two guests, by RoCE. */
import { testScenario } from './suite.ts';

await testScenario('nfs-roce', 'debian');
