import { testScenario } from './suite.ts';

await testScenario('loopback', 'debian');
