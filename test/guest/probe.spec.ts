import { testScenario } from './suite.ts';

await testScenario('probe', 'debian');
await testScenario('probe', 'backports');
