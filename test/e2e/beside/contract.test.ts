import { contractSuite } from '../../contract/suite.ts';
import { connect } from '../support/contract-target.ts';

contractSuite('a real kube-apiserver', connect);
